// Data that a page asks for: scripts that hand over packed JSON, since a page opened from disk may not read files.
"use strict";

const prbench = {
  given: new Map(), // What a script has handed over, by name.
  asked: new Map(), // Name -> the promise of it.

  // What the scripts in data/ call.
  give(name, content) {
    this.given.set(name, content);
  },

  // The packed content of data/<name>.js; a name is one that the index holds, never a text from elsewhere.
  load(name) {
    if (!this.asked.has(name)) {
      const promise = this.request(name);
      this.asked.set(name, promise);
      promise.catch(() => this.asked.delete(name)); // It may be there the next time.
    }
    return this.asked.get(name);
  },

  request(name) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.addEventListener("load", () => {
        script.remove();
        if (this.given.has(name)) resolve(this.given.get(name));
        else reject(new Error(`data/${name}.js does not hold what it should. Build the report again.`));
        this.given.delete(name);
      });
      script.addEventListener("error", () => {
        script.remove();
        reject(new Error(`data/${name}.js cannot be loaded: is the folder "data" beside this page?`));
      });
      script.src = `data/${name}.js`;
      document.head.append(script);
    });
  },

  async unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  },

  // A list in the order of an index; not one of a report that was renewed while the page was open.
  async list(name, index) {
    const content = await this.unpack(await this.load(name));
    if (index && content.order !== index.order) {
      throw new Error("The report was rebuilt while this page was open; reload the page.");
    }
    return content;
  },

  // Says on the page what went wrong, or, without an error, nothing more.
  tell(error) {
    const place = document.getElementById("state");
    place.hidden = !error;
    place.className = "notice bad";
    place.setAttribute("role", "alert");
    place.textContent = error ? error.message : "";
    if (error) document.documentElement.dataset.failed = "yes";
    else delete document.documentElement.dataset.failed;
  },

  // Runs what draws a page; a later run of the same page ends an earlier one.
  async draw(work) {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    try {
      await work(() => turn === this.turn);
      if (turn === this.turn) this.tell(null);
    } catch (error) {
      if (turn === this.turn) this.tell(error);
    }
    if (turn === this.turn) document.documentElement.dataset.drawn = "yes";
  },
};

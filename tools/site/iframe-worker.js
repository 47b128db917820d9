// Browsers start no worker for a page that was opened from a folder (file://), and the site's search is a worker. There
// it lives in a hidden frame instead, and hears and says the same messages.
if (location.protocol === "file:") {
  const talk = "self.postMessage = (message) => parent.postMessage(message, '*')";
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = `<script>${talk}<\/script><script src="${address}"><\/script>`;
      this.there = new Promise((ready) => (this.frame.onload = ready));
      addEventListener("message", ({ source, data }) => {
        if (source === this.frame.contentWindow) this.dispatchEvent(new MessageEvent("message", { data }));
      });
      document.body.append(this.frame);
    }

    postMessage(message) {
      // By the page's own function: that of the frame was replaced, and would answer.
      this.there.then(() => window.postMessage.call(this.frame.contentWindow, message, "*"));
    }

    terminate() {
      this.frame.remove();
    }
  };
}

// Search without a server. Browsers refuse `new Worker("file://...")`, so the script of the worker runs in a hidden
// frame of the page instead. The theme looks for the name IFrameWorker to find its other files.
if (location.protocol === "file:") {
  class FrameWorker extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      frame.srcdoc = "<!doctype html><title>search</title><body></body>";
      this.started = new Promise((resolve, reject) => {
        frame.onload = () => {
          const inner = frame.contentWindow;
          inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inner.document.createElement("script");
          script.src = address;
          script.onload = () => resolve(inner);
          script.onerror = () => reject(new Error(`cannot load ${address}`));
          inner.document.body.append(script);
        };
      });
      document.body.append(frame);
    }

    postMessage(data) {
      this.started.then((inner) => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }
  }
  window.IFrameWorker = FrameWorker;
  window.Worker = FrameWorker;
}

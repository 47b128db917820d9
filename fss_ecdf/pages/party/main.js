// The party's page. The same script is the worker, where there is no document.

import { elementOf } from "../elements.js";
import { Page } from "./page.js";
import { runWorker } from "./worker.js";

if (typeof document === "undefined") {
  runWorker();
} else {
  const about = JSON.parse(elementOf("about").textContent ?? "");
  new Page(about, document.currentScript?.textContent ?? "").start();
}

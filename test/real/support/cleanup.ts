import { after } from "node:test";
import { running } from "./berth.ts";

/** Ends what a failed test left running; otherwise its file would wait for it for ever. */
after(() => {
  for (const child of running) child.kill("SIGKILL");
});

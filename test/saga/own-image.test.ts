import { fromFetched, fromPut } from "./sagas.ts";
import { strikeAtEveryEffect } from "./strike.ts";

strikeAtEveryEffect(fromFetched);
// An upload whose worker is killed leaves half a file under the image's own name. Berth names it
// and waits: that is not among these laws yet.
strikeAtEveryEffect(fromPut, { without: ["worker killed"] });

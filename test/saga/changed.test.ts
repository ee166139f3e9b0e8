import { changed, travelling } from "./sagas.ts";
import { atRequests, strikeAtEveryEffect } from "./strike.ts";

// A worker that dies while it suspends or resumes leaves locks and saved memory behind
// that Berth names, and that a person has to clear: that is not among these laws.
strikeAtEveryEffect(changed, { by: atRequests });
strikeAtEveryEffect(travelling);

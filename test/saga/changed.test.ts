import { changed, travelling } from "./sagas.ts";
import { strikeAtEveryEffect } from "./strike.ts";

strikeAtEveryEffect(changed, 9);
strikeAtEveryEffect(travelling, 9);

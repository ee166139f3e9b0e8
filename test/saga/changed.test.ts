import { changed, travelling } from "./sagas.ts";
import { strikeAtEveryEffect } from "./strike.ts";

strikeAtEveryEffect(changed);
strikeAtEveryEffect(travelling);

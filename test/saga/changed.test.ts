import { changed } from "./sagas.ts";
import { strikeAtEveryEffect } from "./strike.ts";

strikeAtEveryEffect(changed);

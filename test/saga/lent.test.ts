import { lent } from "./sagas.ts";
import { strikeAtEveryEffect } from "./strike.ts";

strikeAtEveryEffect(lent);

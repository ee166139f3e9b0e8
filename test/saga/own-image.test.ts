import { fromFetched, fromPut } from "./sagas.ts";
import { strikeAtEveryEffect } from "./strike.ts";

strikeAtEveryEffect(fromFetched);
strikeAtEveryEffect(fromPut);

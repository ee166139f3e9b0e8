import { travelling, unlucky } from "./sagas.ts";
import { strikeAtEveryEffect } from "./strike.ts";

strikeAtEveryEffect(unlucky);
strikeAtEveryEffect(travelling);

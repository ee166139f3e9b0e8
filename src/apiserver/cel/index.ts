export { compileExpression, type Program, type Variable } from "./compile.ts";
export { declareSchema, type Declared } from "./declare.ts";
export { CelCompileError, CelCostError, CelError } from "./errors.ts";
export { escapeProperty } from "./escape.ts";
export { compilePattern, patternTextMax, type Pattern } from "./pattern.ts";
export { optionalOf } from "./types.ts";
export { none, Optional, type Value } from "./values.ts";

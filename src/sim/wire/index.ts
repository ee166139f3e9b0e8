export { askModel, sendTo } from "./ask-model.ts";
export type { ApiToken } from "./ask-model.ts";

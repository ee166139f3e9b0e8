export type { Listener } from "./listen.ts";
export { listen } from "./listen.ts";
export type { ListenOptions, Served } from "./options.ts";

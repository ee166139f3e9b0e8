export { proxmoxDriver } from "./driver.ts";
export type { ProxmoxOptions } from "./driver.ts";
export type { ProxmoxSettings } from "./context.ts";
export { httpsTransport } from "./transport.ts";
export type { ProxmoxConnection } from "./transport.ts";
export type { TlsTrust } from "./wire/https.ts";
export type { NotSent, Params, PveReply, PveRequest, Send } from "./wire/wire.ts";

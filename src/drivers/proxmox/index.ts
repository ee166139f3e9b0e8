export { dateOf, judgeCertificate } from "./doctor/certificate.ts";
export type {
  ClusterInventory,
  ListedMachine,
  ListedNode,
  ListedSpace,
  ListedStorage,
  ListedVolume,
} from "./doctor/cluster-inventory.ts";
export { httpsEndpoints, proxmoxDoctor } from "./doctor/doctor.ts";
export { newTokenCommands, olderReleaseNotes } from "./doctor/grants.ts";
export { defaultPort, probeEndpoint } from "./doctor/probe.ts";
export type { Probe, ShownCertificate } from "./doctor/probe.ts";
export { parseInventory } from "./doctor/parse-inventory.ts";
export { proxmoxDialect } from "./dialect.ts";
export { proxmoxDriver } from "./driver.ts";
export type { ProxmoxOptions } from "./driver.ts";
export type { FieldLine } from "./changes/field-line.ts";
export { fieldTable } from "./changes/table.ts";
export type { ProxmoxSettings, UnlockAccount } from "./context.ts";
export { endpointOf, endpointTable } from "./endpoints.ts";
export type { EndpointLine } from "./endpoints.ts";
export { httpsTransport } from "./transport.ts";
export type { ProxmoxConnection } from "./transport.ts";
export type { TlsTrust } from "./wire/https.ts";
export { authHeaders, httpForm, wholeBody } from "./wire/wire.ts";
export type { NotSent, Params, PveReply, PveRequest, Send } from "./wire/wire.ts";

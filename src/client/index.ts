export {
  createClient,
  type CallOptions,
  type Client,
  type ClientOptions,
  type DeleteOptions,
  type ListOptions,
  type ObjectClient,
  type Patch,
  type PatchOptions,
  type SelectOptions,
  type WatchOptions,
  type WriteOptions,
} from "./client.ts";
export { isExpired, isOutcomeUnknown, NetworkError } from "./errors.ts";
export { guardWrites } from "./guarded.ts";
export { createHttpsTransport, type HttpsTransport } from "./https.ts";
export {
  createInformer,
  type Informer,
  type InformerHandler,
  type InformerOptions,
} from "./informer.ts";
export type { Indexes } from "./informer-cache.ts";
export type { Kind, ObjectName } from "./kind.ts";
export {
  KubeconfigError,
  loadKubeconfig,
  type Connection,
  type KubeconfigOptions,
} from "./kubeconfig.ts";
export { inProcess, type Transport } from "./transport.ts";

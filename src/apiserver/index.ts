export { createSchemaRunners } from "./admission/index.ts";
export {
  createUserAuthenticator,
  createUserSecret,
  readUserSecret,
  userLabel,
  userSecretName,
  userSecretType,
} from "./authentication/index.ts";
export type { NewUser, StoredUser } from "./authentication/index.ts";
export {
  controllersUser,
  createRoleAuthorizer,
  isRoleName,
  systemNamespace,
} from "./authorization/index.ts";
export type { RoleName } from "./authorization/index.ts";
export { createCatalogue } from "./catalogue.ts";
export { bucketOf, idOf } from "./contract.ts";
export type { Catalogue, ServerEnvironment, User } from "./contract.ts";
export { createDiscovery } from "./discovery/index.ts";
export { listen } from "./http/index.ts";
export type { Listener, ListenOptions } from "./http/index.ts";
export { startLifecycle } from "./lifecycle/index.ts";
export type { Lifecycle } from "./lifecycle/index.ts";
export type { Log } from "./log.ts";
export { decode } from "./objects/index.ts";
export { createOpenApi } from "./openapi/index.ts";
export {
  createAuthority,
  fingerprintOf,
  isServerName,
  issueServerCertificate,
  kubeconfigOf,
  localNames,
  renewalReason,
} from "./pki/index.ts";
export type { KeyPair, PkiEnvironment, ServerNames } from "./pki/index.ts";
export { createResourceHandler } from "./resources/index.ts";
export type { Health, HealthCheck } from "./routes/health.ts";
export { createApiServer } from "./server.ts";
export type { ApiServer, ApiServerOptions, ServedRequest } from "./server.ts";

export type { KeyPair, PkiEnvironment, ServerNames } from "./certificates.ts";
export {
  createAuthority,
  fingerprintOf,
  isServerName,
  issueServerCertificate,
  localNames,
  renewalReason,
} from "./certificates.ts";
export { kubeconfigOf } from "./kubeconfig.ts";

export type { Authenticator } from "./authenticator.ts";
export { authenticate } from "./authenticator.ts";
export type { NewUser, StoredUser } from "./user-secret.ts";
export {
  createUserSecret,
  readUserSecret,
  userLabel,
  userSecretName,
  userSecretType,
} from "./user-secret.ts";
export type { UserAuthenticator } from "./users.ts";
export { createUserAuthenticator } from "./users.ts";

export type { Attributes, Authorizer, Verdict } from "./authorizer.ts";
export { anyOf } from "./authorizer.ts";
export { refused, refusedPath, refuseImpersonation } from "./forbidden.ts";
export {
  controllersGroup,
  controllersUser,
  createRoleAuthorizer,
  isRoleName,
  roleGroup,
} from "./role-authorizer.ts";
export type { RoleName, Rule } from "./roles.ts";
export { roles, systemNamespace } from "./roles.ts";

import type { Resource } from "../resource.ts";
import { configMapResource } from "./config-map.ts";
import { eventResource } from "./event.ts";
import { leaseResource } from "./lease.ts";
import { namespaceResource } from "./namespace.ts";
import { secretResource } from "./secret.ts";
import { serviceAccountResource } from "./service-account.ts";

/** The kinds of Kubernetes itself that the embedded server serves. */
export const builtinResources: readonly Resource[] = [
  namespaceResource,
  secretResource,
  configMapResource,
  serviceAccountResource,
  eventResource,
  leaseResource,
];

export {
  configMapResource,
  eventResource,
  leaseResource,
  namespaceResource,
  secretResource,
  serviceAccountResource,
};

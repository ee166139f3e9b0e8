/** Holds Berth's own objects: the users, the installation id, leases. Only admins get in. */
export const systemNamespace = "berth-system";

export type RoleName = "admin" | "edit" | "view";

/** One thing that a role may do. What no rule allows is refused: there are no rules that deny. */
export interface Rule {
  /**
   * `namespace`: inside of one. `cluster`: kinds that have none, and lists over all namespaces;
   * a role that is granted for one namespace only has these not at all.
   */
  readonly where: "namespace" | "cluster";
  readonly verbs: readonly string[];
  readonly groups: readonly string[];
  /**
   * "secrets", "virtualmachines/scale"; "*" is every kind and "*\/scale" that part of every kind.
   * A subresource has to be named: one that comes later is closed until somebody thought of it.
   */
  readonly resources: readonly string[];
  /** What "*" in `resources` does not mean, by plural. */
  readonly exceptResources?: readonly string[];
  readonly exceptNamespaces?: readonly string[];
}

const read = ["get", "list", "watch"] as const;
const write = ["create", "update", "patch", "delete", "deletecollection"] as const;
const everyGroup = ["*"] as const;
const secrets = ["secrets"] as const;
const outsideSystem = { exceptNamespaces: [systemNamespace] } as const;

/** Kinds without a namespace that only Berth and admins change are readable: people look there. */
const readCluster: Rule = {
  where: "cluster",
  verbs: read,
  groups: everyGroup,
  resources: ["*", "*/status", "*/scale"],
  // A list of Secrets over all namespaces would show those of the system namespace.
  exceptResources: secrets,
};

export const adminRules: readonly Rule[] = [
  { where: "namespace", verbs: ["*"], groups: everyGroup, resources: ["*", "*/*"] },
  { where: "cluster", verbs: ["*"], groups: everyGroup, resources: ["*", "*/*"] },
];

/** The roles, as a table. Users hold one of them everywhere, or in the namespaces they got. */
export const roles: Readonly<Record<RoleName, readonly Rule[]>> = {
  admin: adminRules,
  edit: [
    {
      where: "namespace",
      verbs: [...read, ...write],
      groups: everyGroup,
      resources: ["*", "*/scale"],
      ...outsideSystem,
    },
    // Status is what controllers saw. A person who writes it only deceives themselves.
    {
      where: "namespace",
      verbs: read,
      groups: everyGroup,
      resources: ["*/status"],
      ...outsideSystem,
    },
    readCluster,
  ],
  view: [
    {
      where: "namespace",
      verbs: read,
      groups: everyGroup,
      resources: ["*", "*/status", "*/scale"],
      exceptResources: secrets,
      ...outsideSystem,
    },
    readCluster,
  ],
};

/** What a user of single namespaces needs to know of the cluster to write a VirtualMachine. */
export const tenantClusterRules: readonly Rule[] = [
  {
    where: "cluster",
    verbs: read,
    groups: ["berth.dev"],
    resources: ["hypervisors", "vmnetworks"],
  },
];

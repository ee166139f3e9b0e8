import { berthResources, crdsYaml } from "../../api/index.ts";
import { type Command, exitCodes } from "../command.ts";

export const crds: Command = {
  name: "crds",
  summary: "print Berth's kinds as CRDs for a Kubernetes cluster",
  description:
    "Prints the CustomResourceDefinitions of Berth's kinds as YAML, for a Kubernetes 1.30 or later: " +
    "the same schemas, defaults and rules that berth up serves.\n\n" +
    "Kinds whose controllers are not in this version are left out unless --all is given.",
  usage: "crds [--all]",
  options: { all: { type: "boolean", description: "also the kinds that are not served yet" } },
  arguments: [],
  examples: ["berth crds | kubectl apply -f -"],
  run: async (call) => {
    const chosen = berthResources.filter((resource) => resource.served || call.flag("all"));
    call.terminal.print(crdsYaml(chosen).trimEnd());
    return exitCodes.ok;
  },
};

import { describeDriver } from "../../hypervisor/conformance.ts";
import type { Stage } from "../../hypervisor/testing/stage.ts";
import { simulatedStage } from "./testing/simulated-stage.ts";

describeDriver("Proxmox VE 7.4", () => simulatedStage("7.4"), [
  {
    test: "makes a machine from an image, as large as asked for, and starts it",
    reason: "7.4 has no content type for image files: a machine there is cloned or blank",
  },
]);
describeDriver("Proxmox VE 8.4", () => simulatedStage("8.4"));
describeDriver("Proxmox VE 9.2", () => simulatedStage("9.2"));
for (const seconds of [-120, 120]) {
  const stage = (): Stage => simulatedStage("9.2", undefined, seconds * 1000);
  describeDriver(`Proxmox VE 9.2 with its clocks ${seconds} s ahead`, stage);
}

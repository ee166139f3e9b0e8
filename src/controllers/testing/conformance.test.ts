import { describeDriver } from "../../hypervisor/conformance.ts";
import { modelStage } from "./model-stage.ts";

describeDriver("the model hypervisor", modelStage);

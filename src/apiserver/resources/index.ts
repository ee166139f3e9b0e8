export { createResourceHandler } from "./handler.ts";

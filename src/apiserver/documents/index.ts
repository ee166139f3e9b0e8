export { acceptedTypes, takesType } from "./accept.ts";
export {
  documentOf,
  makeDocument,
  notAcceptable,
  perGeneration,
  serveDocument,
  type Document,
  type DocumentHandler,
  type DocumentRequest,
} from "./document.ts";

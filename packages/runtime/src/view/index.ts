export { publicEvent, publicEventJson, withoutLongResults } from './public-event.ts'
export { ViewFold, threadView } from './view-fold.ts'
export { alignSteps, viewHtml } from './thread-view.ts'
export type {
  ViewCall,
  ViewMessage,
  ThreadView,
  ViewItem,
  ViewUsage,
  ViewWait,
} from './thread-view.ts'

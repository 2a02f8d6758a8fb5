export { publicEvent } from './public-event.ts'
export { ViewFold, threadView } from './view-fold.ts'
export { alignSteps } from './align-steps.ts'
export type {
  ViewCall,
  ViewMessage,
  ThreadView,
  ViewItem,
  ViewUsage,
  ViewWait,
} from './thread-view.ts'

export { publicEvent } from './public-event.ts'
export {
  ThreadFold,
  threadView,
  type CallItem,
  type MessageItem,
  type NoteItem,
  type ThreadView,
  type ViewChild,
  type ViewFailure,
  type ViewItem,
  type ViewUsage,
  type ViewWait,
} from './thread-view.ts'

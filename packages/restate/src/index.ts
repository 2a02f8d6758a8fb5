export { restateDispatcher, type RestateDispatcherOptions } from './restate-dispatcher.ts'
export { RestateDispatcherError, type RestateErrorCode } from './restate-http.ts'

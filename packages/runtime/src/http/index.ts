export { createHttp, type ClientConnection, type Http, type HttpOptions } from './create-http.ts'
export { serve, type ServeOptions, type Serving } from './serve.ts'
export type { Auth, Verify } from './auth/authenticate.ts'
export type { ApiKey } from './auth/authenticate.ts'
export { jwtAuth, type JwtAuthOptions } from './auth/jwt-auth.ts'
export type { Jwk } from './auth/jwt-auth.ts'
export type { Principal, Scope } from '../operations/principal.ts'
export type { HttpLimits } from './services.ts'
export {
  HttpError,
  STATUS,
  type ApiErrorCode,
  type HttpErrorCode,
} from '../operations/http-error.ts'
export type { Call, Method, OperationRoute } from '../operations/operation.ts'

export { jsonResponse, noContent } from '../operations/operation.ts'
export { eventStream, type EventStreamOptions } from './stream/event-stream.ts'
export type { TreeEvent } from './stream/tree-stream.ts'
export { startWebhooks, type Webhooks, type WebhooksOptions } from './webhooks/start-webhooks.ts'
export type { Webhook, WebhookEvent, WebhookMessage } from './webhooks/webhook-queue.ts'

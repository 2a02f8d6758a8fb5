export type { Middleware, MiddlewareContext, MiddlewareMetadata } from '../middleware.ts'

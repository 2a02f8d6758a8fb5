export { fallback } from './fallback.ts'
export { route, type RouteMember } from './route.ts'
export { rateLimit } from './rate-limit.ts'
export { RateLimiter } from './rate-limiter.ts'

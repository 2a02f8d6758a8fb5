export { fallback, type FallbackOptions } from './fallback.ts'
export { route, type RouteMember, type RouteOptions } from './route.ts'
export type { MemberInput, MemberOptions } from './member.ts'
export { rateLimit, type RateLimitOptions } from './rate-limit.ts'
export {
  RateLimiter,
  type RateAdmission,
  type AdmissionRequest,
  type RateLimiterOptions,
} from './rate-limiter.ts'

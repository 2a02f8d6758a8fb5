export { fallback } from './fallback.ts'
export { route, type RouteMember } from './route.ts'
export type { MemberInput, MemberOptions } from './member.ts'
export { rateLimit } from './rate-limit.ts'
export {
  RateLimiter,
  type RateAdmission,
  type AdmissionRequest,
  type RateLimiterOptions,
} from './rate-limiter.ts'

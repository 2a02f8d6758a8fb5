export { fallback, type FallbackOptions } from './fallback.ts'
export { route, type RouteMember, type RouteOptions } from './route.ts'
export type { MemberInput, MemberOptions } from './member.ts'

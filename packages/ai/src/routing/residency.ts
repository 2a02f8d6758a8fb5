import type { JsonObject } from '@skein/base'
import type { Modality } from '../contract/error.ts'
import { ErrorCode, UPPError } from '../contract/error.ts'
import type { AnyRequest } from '../contract/middleware.ts'
import type { Member } from './member.ts'

/**
 * Where requests may be processed: in the European Union, in the United States, or where a function says. It gets the
 * region that the vendor names (`eu-central-1`, `europe-west4`, `eu`, `global`), or undefined if none is known.
 */
export type Residency = 'eu' | 'us' | ((region: string | undefined) => boolean)

/** The code of the vendor in the error for a request that no member may be sent. */
export const RESIDENCY_CODE = 'RESIDENCY'

/** Regions of Amazon and Google with a name of Europe that are not in the Union: London and Zurich. */
const outsideUnion: ReadonlySet<string> = new Set([
  'eu-west-2',
  'eu-central-2',
  'europe-west2',
  'europe-west6',
])

const areas: Readonly<Record<'eu' | 'us', (region: string) => boolean>> = {
  eu: (region) => /^(eu|europe)(-|$)/.test(region) && !outsideUnion.has(region),
  us: (region) => /^us(-|$)/.test(region),
}

/** A member with its model bound for one modality; only language models name their region. */
type Placed = Member & { readonly bound: object }

/** The members that a request may be sent to, and those that it may not. */
export interface ResidentMembers<M> {
  readonly inside: readonly M[]
  readonly outside: readonly M[]
}

/** Separates the members by residency. Throws if none is left. Without a residency all are inside. */
export function residentMembers<M extends Placed>(
  members: readonly M[],
  residency: Residency | undefined,
  {
    request,
    provider,
    modality,
  }: { readonly request: AnyRequest; readonly provider: string; readonly modality: Modality },
): ResidentMembers<M> {
  if (residency === undefined) return { inside: members, outside: [] }
  const inside: M[] = []
  const outside: M[] = []
  for (const member of members) {
    const isInside = isResident(residency, regionOf(member, request))
    if (isInside) inside.push(member)
    else outside.push(member)
  }
  if (inside.length > 0) return { inside, outside }
  throw new UPPError(
    `No model of the ${provider} is in the residency ${nameOf(residency)}; nothing was sent.`,
    {
      code: ErrorCode.InvalidRequest,
      provider,
      modality,
      vendorCode: RESIDENCY_CODE,
      vendorType: nameOf(residency),
      hint: `Outside: ${outside.map((member) => `${member.label} (${regionOf(member, request) ?? 'region unknown'})`).join(', ')}. Declare the region of a member with { model, region }.`,
    },
  )
}

/**
 * Returns the region of a member: what the caller declares, or what the model says of itself. An address of the
 * caller's may be anywhere, so with one only a declared region counts.
 */
export function regionOf(
  { region, config, bound }: Placed,
  request: Pick<AnyRequest, 'config'>,
): string | undefined {
  if (region !== undefined) return region
  const hasAddress = (config?.baseUrl ?? request.config.baseUrl) !== undefined
  const own = 'region' in bound ? bound.region : undefined
  return hasAddress || typeof own !== 'string' ? undefined : own
}

/** A region that is not known is outside of every area; a function that fails lets nothing through. */
function isResident(residency: Residency, region: string | undefined): boolean {
  if (typeof residency !== 'function') return region !== undefined && areas[residency](region)
  return residency(region) === true
}

function nameOf(residency: Residency): string {
  return typeof residency === 'function' ? 'of the function' : JSON.stringify(residency)
}

/** What the answer says of the rule: which one, where it was made, and which members were left out. */
export function residencyReport<M extends Placed>(
  residency: Residency,
  {
    member,
    outside,
    request,
  }: { readonly member: M; readonly outside: readonly M[]; readonly request: AnyRequest },
): JsonObject {
  return {
    residency: typeof residency === 'function' ? 'function' : residency,
    model: member.label,
    region: regionOf(member, request),
    excluded: outside.map(({ label }) => label),
  }
}

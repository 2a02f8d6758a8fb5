/** A message as Pydantic AI writes it. It may have more fields than the type lists. */

/** A message as Pydantic AI writes it. It may have more fields than the type lists. */
export interface PydanticMessage {
  readonly kind: 'request' | 'response'
  readonly parts: readonly PydanticPart[]
  readonly timestamp?: string | null
  readonly [key: string]: unknown
}

/** A message part as Pydantic AI writes it. */
export interface PydanticPart {
  readonly part_kind: string
  readonly [key: string]: unknown
}

/** A place from which a search is made. */
export type SearchLocation = {
  readonly type: 'approximate'
  readonly city?: string
  readonly country?: string
  readonly region?: string
  readonly timezone?: string
}

/** A tool that a vendor names by its `type`, with the vendor's options. */
export type Typed<Type extends string, Options = object> = { readonly type: Type } & Options

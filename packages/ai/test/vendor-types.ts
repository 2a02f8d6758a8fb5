import type { ModelReference } from '@skein/ai'

/** The known parameters of a model. */
export type KnownParams<Model> = Model extends ModelReference<infer Known> ? Known : never

/** The known ids of a vendor: the literals among what it accepts. */
export type KnownIds<Vendor extends (modelId: never) => unknown> = Literals<Parameters<Vendor>[0]>
export type Literals<Id> = Id extends string ? (string extends Id ? never : Id) : never

/**
 * How our declaration differs from that of the vendor's SDK: names that the SDK has and we have not, names that
 * only we have, and names with a value that the SDK does not accept. All are `never` where the two agree.
 * `Owned` are the names that `llm` sets itself.
 */
export interface Difference<Ours, Sdk, Owned = never> {
  readonly missing: Exclude<keyof Sdk, keyof Ours | Owned>
  readonly unknown: Exclude<keyof Ours, keyof Sdk>
  readonly wrong: {
    [Key in keyof Ours & keyof Sdk]: [Compared<NonNullable<Ours[Key]>>] extends [Plain<Sdk[Key]>]
      ? never
      : Key
  }[keyof Ours & keyof Sdk]
}

export interface None {
  readonly missing: never
  readonly unknown: never
  readonly wrong: never
}

/** A type of ours for comparison: not read-only, and open where it says no more than `object`. */
export type Compared<Value> = unknown extends Value
  ? any
  : Value extends readonly (infer Item)[]
    ? Compared<Item>[]
    : Value extends object
      ? [keyof Value] extends [never]
        ? any
        : { -readonly [Key in keyof Value]: Compared<Value[Key]> }
      : Value

/** A type of an SDK with the values of enums as text. */
export type Plain<Value> = Value extends string
  ? string extends Value
    ? Value
    : `${Value}`
  : Value extends (infer Item)[]
    ? Plain<Item>[]
    : Value extends object
      ? { [Key in keyof Value]: Plain<Value[Key]> }
      : Value

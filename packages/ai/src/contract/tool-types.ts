import type { JsonObject, JsonValue } from '@skein/base'
import type { Deferred, Tool, ToolExecution } from './tool.ts'

/** The end of a call, as a stream reports it. */
export type ToolEnd<
  Name extends string = string,
  Result = unknown,
  IsError extends boolean = boolean,
> = {
  readonly toolCallId: string
  readonly toolName: Name
  readonly result: Result
  readonly isError: IsError
  /** Set if it is unknown whether the call took effect; it did not end in time. */
  readonly isUnknown?: true
  readonly timestamp: number
  readonly durationMs: number
}

/** The types of finished calls, in turns and in streams. */
export type ToolTypes = {
  readonly execution: ToolExecution
  readonly end: ToolEnd
}

/**
 * The types of the calls of the tools `T`. A call that succeeded has the name, arguments and result of its
 * tool; a call that failed, also because no tool has its name, has a text as result.
 */
export type TypesOf<T extends Tool> = Tool extends T
  ? // Spelled out and not `ToolTypes`, which declaration files of other packages could not import.
    { readonly execution: ToolExecution; readonly end: ToolEnd }
  : {
      readonly execution: Execution<T> | ToolExecution<string, JsonObject, string, true>
      readonly end: End<T> | ToolEnd<string, string, true>
    }

type Execution<T extends Tool> = T extends Tool
  ? ToolExecution<
      T['name'],
      // The arguments that ran: what the schema of the tool has made of those that the model sent.
      T extends { readonly '~types'?: { readonly args: infer Args } }
        ? JsonObject & Args
        : JsonObject,
      ResultOf<T>,
      false
    >
  : never

type End<T extends Tool> = T extends Tool ? ToolEnd<T['name'], ResultOf<T>, false> : never

type ResultOf<T extends Tool> = ResultJson<
  Exclude<ToolValue<Awaited<ReturnType<T['run']>>>, Deferred>
>

/** The result of a tool: what `run` returns, or what `run` yields if it is an async generator. */
export type ToolValue<Result> =
  Result extends AsyncGenerator<infer Yielded, infer Returned>
    ? Yielded | Exclude<Returned, void>
    : Result

/** What `toResultJson` makes of a value that a tool returns: JSON, with dates as text and so on. */
export type ResultJson<Value> = unknown extends Value
  ? unknown
  : Value extends string | number | boolean | null | readonly JsonValue[]
    ? Value
    : Value extends undefined | void
      ? null
      : Value extends bigint | Date | RegExp
        ? string
        : Value extends { toJSON: (...given: never[]) => infer Json }
          ? ResultJson<Json>
          : Value extends ReadonlyMap<unknown, unknown> | Error | ArrayBufferLike | ArrayBufferView
            ? JsonValue
            : Value extends ReadonlySet<infer Item>
              ? readonly ResultJson<Item>[]
              : Value extends readonly unknown[]
                ? { readonly [Index in keyof Value]: ResultJson<Value[Index]> }
                : ResultObject<Value>

/** The JSON of an object: methods and symbols are left out. An object that may have any member is left as it is. */
type ResultObject<Value> = string extends keyof Value
  ? Value
  : {
      readonly [
        Key in keyof Value as Key extends symbol
          ? never
          : Value[Key] extends (...given: never[]) => unknown
            ? never
            : Key
      ]: ResultMember<Value[Key]>
    }

/** The JSON of a member: undefined stays possible, because such a member is left out of its object. */
type ResultMember<Value> = unknown extends Value
  ? unknown
  : ResultJson<Exclude<Value, undefined>> | (undefined extends Value ? undefined : never)

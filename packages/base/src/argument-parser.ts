import type { JsonObject } from './json.ts'

/**
 * The parse phase of a tool that was made from a schema. What calls the tool parses the arguments once, before
 * anything judges the call, and then calls the ordinary `run` with the value that `parse` returned. `run`
 * recognises such a value and does not parse it again; it parses every other value first. A wrapper can
 * therefore replace `run`, as long as it passes the arguments on as it received them.
 */
export interface ArgumentParser {
  /**
   * A hash of what can be seen of the schema. A value that was recorded under another hash was parsed by another
   * definition.
   */
  readonly schema: string
  /** Parses what a model sent. Rejects with every issue, or if the value that the schema makes is not a JSON object. */
  readonly parse: (params: unknown) => Promise<JsonObject>
  /**
   * Returns a value that `parse` has made before, so that `run` recognises it: a copy, or a value from a log. The
   * value is not checked, so it must never come from a model.
   */
  readonly restore: (parsed: JsonObject) => JsonObject
}

/** Arguments that `parse` has made, as logs store them. */
export interface RecordedArguments {
  readonly arguments: JsonObject
  /** The `schema` of the parser that made them. */
  readonly schema: string
}

const key: unique symbol = Symbol.for('skein.argument-parser')

interface Parsing {
  readonly [key]?: ArgumentParser
}

/**
 * Returns the member that gives a tool, or its `run` function, a parse phase. Its name is a symbol: a spread and
 * `deriveTool` copy it, and no member of a hand-written tool can be mistaken for it.
 */
export function argumentParserMember(parser: ArgumentParser | undefined): object {
  return parser ? ({ [key]: parser } satisfies Parsing) : {}
}

/**
 * Returns the parse phase of a tool; undefined for a tool whose arguments are never parsed. The phase is also found
 * on `run`, for a wrapper that copies only the four fields of a tool.
 */
export function argumentParserOf(tool: object): ArgumentParser | undefined {
  const { [key]: own, run } = tool as Parsing & { readonly run?: Parsing | null }
  return own ?? run?.[key]
}

const parsedBy: unique symbol = Symbol.for('skein.parsed-by')

/**
 * Returns the member of a call's context which says that its arguments were parsed. `run` then refuses arguments that a
 * wrapper has copied or changed, if parsing them a second time would change them: 5 cents approved as 500 must not
 * run as 50000.
 */
export function parsedByMember(parser: ArgumentParser | undefined): object {
  return parser ? { [parsedBy]: parser } : {}
}

/** Whether the context of a call says that this parser has parsed its arguments. */
export function isParsedBy(context: unknown, parser: ArgumentParser): boolean {
  if (typeof context !== 'object' || context === null) return false
  return (context as { readonly [parsedBy]?: ArgumentParser })[parsedBy] === parser
}

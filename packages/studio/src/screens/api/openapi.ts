/** The part of a JSON Schema that the page shows. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly description?: string
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
}

/** A parameter of a path or a query. */
export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema?: Schema
  readonly description?: string
  /** Whether the value may contain slashes, which then are not encoded. */
  readonly 'x-rest'?: boolean
}

type Content = Readonly<Record<string, { readonly schema?: Schema; readonly example?: unknown }>>

/** One operation of the API, from the OpenAPI document. */
export interface ApiOperation {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly group: string
  readonly summary: string
  readonly scope: string
  readonly parameters: readonly Parameter[]
  readonly body?: { readonly required?: boolean; readonly content: Content }
  readonly answers: readonly {
    readonly status: string
    readonly description: string
    readonly content: Content
  }[]
}

/** What the page needs of the document. */
export interface ApiDocument {
  readonly operations: readonly ApiOperation[]
  readonly schemas: Readonly<Record<string, Schema>>
}

interface RawOperation {
  readonly operationId?: string
  readonly tags?: readonly string[]
  readonly summary?: string
  readonly 'x-scope'?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: ApiOperation['body']
  readonly responses?: Readonly<
    Record<string, { readonly description?: string; readonly content?: Content }>
  >
}

/** Reads the OpenAPI document of the server; paths become relative to the address of the server. */
export function readDocument(document: unknown, prefix: string): ApiDocument {
  const { paths = {}, components } = document as {
    readonly paths?: Readonly<Record<string, Readonly<Record<string, RawOperation>>>>
    readonly components?: { readonly schemas?: ApiDocument['schemas'] }
  }
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, raw]): ApiOperation => {
      const { operationId = `${method} ${path}`, tags = [], summary = '', parameters = [] } = raw
      return {
        id: operationId,
        method: method.toUpperCase(),
        path: path.startsWith(prefix) ? path.slice(prefix.length) : path,
        group: tags[0] ?? 'others',
        summary,
        scope: raw['x-scope'] ?? 'public',
        parameters,
        body: raw.requestBody,
        answers: Object.entries(raw.responses ?? {}).map(([status, answer]) => ({
          status,
          description: answer.description ?? '',
          content: answer.content ?? {},
        })),
      }
    }),
  )
  return { operations, schemas: components?.schemas ?? {} }
}

/** Follows a reference to a named schema. */
export function resolved(schema: Schema, schemas: ApiDocument['schemas']): Schema {
  const name = schema.$ref?.split('/').at(-1)
  return (name === undefined ? undefined : schemas[name]) ?? schema
}

/** Describes a type in a few words: `string`, `list of Thread`, `"a" | "b"`, `number 0–1000`. */
export function typeText(schema: Schema | undefined): string {
  if (schema === undefined) return 'anything'
  const { $ref, enum: values, items, type, anyOf, oneOf, minimum, maximum, maxLength } = schema
  if ($ref !== undefined) return $ref.split('/').at(-1) ?? 'object'
  if ('const' in schema) return JSON.stringify(schema.const)
  if (values) return values.map((one) => JSON.stringify(one)).join(' | ')
  const either = anyOf ?? oneOf
  if (either) return either.map(typeText).join(' or ')
  const name = Array.isArray(type) ? type.join(' | ') : String(type ?? 'anything')
  if (name === 'array') return `list of ${typeText(items)}`
  if (minimum !== undefined && maximum !== undefined) return `${name} ${minimum}–${maximum}`
  if (maxLength !== undefined) return `${name}, at most ${maxLength} characters`
  return name
}

/** An example of a request body: the document's own, or one with only the required properties. */
export function exampleBody(
  { body }: ApiOperation,
  schemas: ApiDocument['schemas'],
): { readonly mediaType: string; readonly text: string } | undefined {
  const [mediaType, media] = Object.entries(body?.content ?? {})[0] ?? []
  if (mediaType === undefined || !media) return undefined
  if (!mediaType.includes('json') || mediaType.includes('jsonl')) return { mediaType, text: '' }
  const example = media.example ?? exampleOf(media.schema ?? {}, schemas)
  return { mediaType, text: JSON.stringify(example, null, 2) }
}

function exampleOf(given: Schema, schemas: ApiDocument['schemas'], depth = 0): unknown {
  const schema = resolved(given, schemas)
  if ('const' in schema) return schema.const
  if (schema.enum) return schema.enum[0]
  const [first] = schema.anyOf ?? schema.oneOf ?? []
  if (first) return exampleOf(first, schemas, depth + 1)
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  if (type === 'array') return []
  if (type === 'number' || type === 'integer') return schema.minimum ?? 1
  if (type === 'boolean') return true
  if (type === 'string') return ''
  if (type !== 'object' || depth > 4) return {}
  const { properties = {}, required = [] } = schema
  const members = required.flatMap((name) => {
    const member = properties[name]
    return member ? [[name, exampleOf(member, schemas, depth + 1)] as const] : []
  })
  return Object.fromEntries(members)
}

/** The values that a person has entered for the parameters, by name. */
export type ApiValues = Readonly<Record<string, string>>

/** The path and query of a request. A parameter without a value stays in the path as `{name}`. */
export function requestPath({ path, parameters }: ApiOperation, values: ApiValues): string {
  const filled = path.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name] ?? ''
    if (value === '') return whole
    const isRest = parameters.some((one) => one.name === name && one['x-rest'] === true)
    return isRest
      ? value.split('/').map(encodeURIComponent).join('/')
      : encodeURIComponent(value).replace(/^\.{1,2}$/, (dots) => dots.replaceAll('.', '%2E'))
  })
  const query = new URLSearchParams()
  for (const { name, in: place } of parameters)
    if (place === 'query' && (values[name] ?? '') !== '') query.set(name, values[name]!)
  return query.size > 0 ? `${filled}?${query}` : filled
}

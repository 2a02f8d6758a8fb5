import { useId, useState, type ReactNode } from 'react'
import { isObject } from '@skein/base'
import { line } from './format.ts'

/** The parts of a JSON Schema that the form understands. */
interface FieldSchema {
  readonly type?: unknown
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly description?: unknown
  readonly default?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
}

interface ObjectSchema {
  readonly properties: Readonly<Record<string, FieldSchema>>
  readonly required: ReadonlySet<unknown>
}

interface ArgumentsFieldsProps {
  /** The arguments as JSON text. They are kept as text, so that invalid input is not lost while a person types. */
  readonly text: string
  readonly setText: (text: string) => void
  /** The JSON Schema of the arguments; without a schema there is no form, only a field for JSON. */
  readonly schema?: unknown
}

/**
 * The arguments of a call, as a form with a field for each argument in the schema, or as JSON. Both
 * edit the same text, so that a person can switch between them.
 */
export function ArgumentsFields({ text, setText, schema }: ArgumentsFieldsProps): ReactNode {
  const [isJson, setJson] = useState(false)
  const shape = objectSchema(schema)
  const parsed = readArguments(text)
  const problem = typeof parsed === 'string' ? parsed : undefined
  const hasForm = shape !== undefined && typeof parsed !== 'string'
  const isForm = hasForm && !isJson
  return (
    <div className="stack">
      {isForm ? (
        <FormFields
          shape={shape}
          value={parsed as Record<string, unknown>}
          onChange={(value) => setText(JSON.stringify(value, null, 2))}
        />
      ) : (
        <label>
          <span>Arguments, as JSON</span>
          <textarea
            className="field mono"
            rows={Math.min(18, Math.max(4, text.split('\n').length + 1))}
            spellCheck={false}
            value={text}
            aria-invalid={problem !== undefined}
            onChange={(event) => setText(event.target.value)}
          />
        </label>
      )}
      {problem !== undefined && <p className="bad small">{problem}</p>}
      {hasForm && (
        <p className="small">
          <button type="button" className="link" onClick={() => setJson(!isJson)}>
            {isForm ? 'Edit as JSON' : 'Edit as a form'}
          </button>
        </p>
      )}
    </div>
  )
}

/** Returns the parsed arguments, or a sentence about what is wrong with the text. */
export function readArguments(text: string): object | string {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) && !Array.isArray(value)
      ? value
      : 'The arguments must be a JSON object: { "name": value }.'
  } catch (error) {
    return `This is not JSON: ${(error as Error).message}`
  }
}

/** Returns the arguments with which the form starts: the schema's defaults, and empty values for required arguments. */
export function firstArguments(schema: unknown): string {
  const shape = objectSchema(schema)
  const values = Object.entries(shape?.properties ?? {}).flatMap(([name, field]) => {
    if (field.default !== undefined) return [[name, field.default] as const]
    return shape!.required.has(name) ? [[name, emptyOf(field)] as const] : []
  })
  return JSON.stringify(Object.fromEntries(values), null, 2)
}

function emptyOf({ type, enum: choices, const: only }: FieldSchema): unknown {
  if (only !== undefined) return only
  if (choices) return choices[0]
  const empty = { string: '', number: 0, integer: 0, boolean: false, array: [], object: {} }
  return empty[type as keyof typeof empty] ?? null
}

/** Returns the schema if it describes an object with at least one known property; otherwise undefined. */
function objectSchema(schema: unknown): ObjectSchema | undefined {
  if (!isObject(schema) || !isObject(schema['properties'])) return undefined
  const entries = Object.entries(schema['properties'])
  if (entries.length === 0 || !entries.every(([, field]) => isObject(field))) return undefined
  const { required } = schema
  return {
    properties: Object.fromEntries(entries) as ObjectSchema['properties'], // every member was looked at
    required: new Set(Array.isArray(required) ? required : []),
  }
}

function FormFields({
  shape: { properties, required },
  value,
  onChange,
}: {
  readonly shape: ObjectSchema
  readonly value: Readonly<Record<string, unknown>>
  readonly onChange: (value: Readonly<Record<string, unknown>>) => void
}): ReactNode {
  const set = (name: string, next: unknown): void => {
    const { [name]: _, ...others } = value
    onChange(next === undefined ? others : { ...value, [name]: next })
  }
  // Arguments that the schema does not name are shown too, so that none is hidden.
  const others = Object.keys(value).filter((name) => !Object.hasOwn(properties, name))
  return (
    <>
      {Object.entries(properties).map(([name, schema]) => (
        <Field
          key={name}
          name={name}
          schema={schema}
          isRequired={required.has(name)}
          value={value[name]}
          onChange={(next) => set(name, next)}
        />
      ))}
      {others.length > 0 && (
        <p className="small soft">
          Also: {others.map((name) => line(name, 40)).join(', ')}. Write JSON to see or change them.
        </p>
      )}
    </>
  )
}

interface FieldProps {
  readonly name: string
  readonly schema: FieldSchema
  readonly isRequired: boolean
  readonly value: unknown
  /** Undefined leaves the argument out. */
  readonly onChange: (value: unknown) => void
}

function Field(props: FieldProps): ReactNode {
  const { name, schema, isRequired } = props
  const hint = useId()
  const { description } = schema
  return (
    <div className="form-field">
      <label>
        <span>
          <code>{line(name, 60)}</code>
          {!isRequired && <span className="soft"> can be left out</span>}
        </span>
        <Input {...props} hint={description === undefined ? undefined : hint} />
      </label>
      {description !== undefined && (
        <p id={hint} className="small soft">
          {line(String(description), 300)}
        </p>
      )}
    </div>
  )
}

function Input({
  schema,
  isRequired,
  value,
  onChange,
  hint,
}: FieldProps & { readonly hint: string | undefined }): ReactNode {
  const { type, enum: choices, minimum, maximum, maxLength } = schema
  if (choices || type === 'boolean') {
    const options = choices ?? [true, false]
    return (
      <select
        className="select"
        aria-describedby={hint}
        value={options.findIndex((choice) => choice === value)}
        onChange={(event) => onChange(options[Number(event.target.value)])}
      >
        {(!isRequired || !options.includes(value)) && <option value={-1}>not given</option>}
        {options.map((choice, index) => (
          <option key={index} value={index}>
            {line(String(choice), 80)}
          </option>
        ))}
      </select>
    )
  }
  if (type === 'string') {
    const text = typeof value === 'string' ? value : ''
    const set = (next: string): void => onChange(next === '' && !isRequired ? undefined : next)
    return (maxLength ?? 0) > 300 || text.length > 80 || text.includes('\n') ? (
      <textarea
        className="field"
        rows={4}
        aria-describedby={hint}
        value={text}
        onChange={(event) => set(event.target.value)}
      />
    ) : (
      <input
        className="field"
        aria-describedby={hint}
        value={text}
        onChange={(event) => set(event.target.value)}
      />
    )
  }
  const isNumber = type === 'number' || type === 'integer'
  return (
    <TypedInput
      isNumber={isNumber}
      bounds={isNumber ? { min: minimum, max: maximum, step: type === 'integer' ? 1 : 'any' } : {}}
      value={value}
      onChange={onChange}
      hint={hint}
    />
  )
}

/** An input for a number, or for any other value as JSON. Text that is not yet a valid value stays in the input. */
function TypedInput({
  isNumber,
  bounds,
  value,
  onChange,
  hint,
}: {
  readonly isNumber: boolean
  readonly bounds: { readonly min?: number; readonly max?: number; readonly step?: number | 'any' }
  readonly value: unknown
  readonly onChange: (value: unknown) => void
  readonly hint: string | undefined
}): ReactNode {
  const [typed, setTyped] = useState<string>()
  const text = typed ?? (value === undefined ? '' : JSON.stringify(value))
  const isWrong = typed !== undefined && typed.trim() !== '' && !isJsonText(typed)
  const set = (next: string): void => {
    setTyped(next)
    if (next.trim() === '') onChange(undefined)
    else if (isJsonText(next)) onChange(JSON.parse(next))
  }
  const common = { className: `field ${isNumber ? 'num' : 'mono'}`, 'aria-describedby': hint }
  return isNumber ? (
    <input
      {...common}
      {...bounds}
      type="number"
      value={text}
      onChange={(event) => set(event.target.value)}
    />
  ) : (
    <>
      <textarea
        {...common}
        rows={Math.min(8, text.split('\n').length + 1)}
        spellCheck={false}
        placeholder="JSON"
        value={text}
        aria-invalid={isWrong}
        onChange={(event) => set(event.target.value)}
      />
      {isWrong && <span className="bad small">This is not JSON yet; the last value is used.</span>}
    </>
  )
}

function isJsonText(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** The part of JSON Schema that the three contract schemas use; `validate` reads no more than this. */
export interface ContractSchema {
  readonly $schema?: string
  readonly title?: string
  readonly type: JsonType | readonly JsonType[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, ContractSchema>>
  readonly items?: ContractSchema
  readonly enum?: readonly string[]
  readonly minLength?: 1
  readonly format?: 'uuid' | 'date-time'
  readonly additionalProperties?: false
}

export type JsonType = 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean' | 'null'

#!lua name=splinter

redis.register_function('get', function(keys) return redis.call('GET', keys[1]) end)

redis.register_function('put', function(keys, args) return redis.call('SET', keys[1], args[1]) end)

-- The sum of the first eight bytes of the records that KEY lists, 30 bytes a key.
redis.register_function('aggregate', function(keys)
  local list, names, sum = redis.call('GET', keys[1]), {}, 0
  for i = 1, #list, 30 do names[#names + 1] = string.sub(list, i, i + 29) end
  for _, value in ipairs(redis.call('MGET', unpack(names))) do
    sum = sum + struct.unpack('<L', value)
  end
  return string.format('%.0f', sum)
end)

-- Entries of an association list from a position on: u32 number, blocks, next; then u64 id2, u32 time, u32 length, data each.
redis.register_function('assoc_range', function(keys, args)
  local list = redis.call('GET', keys[1])
  if not list then return '' end
  local skip, left, at = tonumber(args[1]), tonumber(args[2]), 13
  local first = at
  while at <= #list and skip + left > 0 do
    at = at + 16 + struct.unpack('<I4', list, at + 12)
    if skip > 0 then skip, first = skip - 1, at else left = left - 1 end
  end
  return string.sub(list, first, at - 1)
end)

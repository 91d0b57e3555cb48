-- names: ajoin
-- Bounds and dimensions of arrays that are put together.
\set VERBOSITY verbose
select '[3:4]={1,2}'::int[] || 5, 5 || '[3:4]={1,2}'::int[], '[3:4]={1,2}'::int[] || '[7:8]={1,2}'::int[];
select '[3:4]={1,2}'::int[] || '{}'::int[], '{}'::int[] || '[3:4]={1,2}'::int[], '{}'::int[] || 3, 3 || '{}'::int[];
select null::int[] || 3, 3 || null::int[], null::int[] || '{1}'::int[], '[2:2]={1}'::int[] || null::int[], null::int[] || null::int[];
select '[0:1]={1,2}'::int[] || null::int, array_append(null::int[], null), array_prepend(null, '[-5:-5]={1}'::int[]);
select '{{1,2}}'::int[] || '{{3,4},{5,6}}'::int[], '[3:3][2:3]={{1,2}}'::int[] || '[5:5][2:3]={{3,4}}'::int[];
select '{1,2}'::int[] || '{{3,4},{5,6}}'::int[], '{{3,4},{5,6}}'::int[] || '{1,2}'::int[];
select '[4:5]={1,2}'::int[] || '[3:3][4:5]={{3,4}}'::int[], '[3:3][4:5]={{3,4}}'::int[] || '[4:5]={1,2}'::int[];
select '{{{1}}}'::int[] || '{{2}}'::int[], '{{2}}'::int[] || '{{{1}}}'::int[];
select '{{1,2}}'::int[] || '{{3}}'::int[];
select '{{1,2}}'::int[] || '[1:1][2:3]={{3,4}}'::int[];
select '{1}'::int[] || '{{3,4}}'::int[];
select '{{3,4}}'::int[] || '[2:3]={3,4}'::int[];
select '{1}'::int[] || '{{{1}}}'::int[];
select '{{{1}}}'::int[] || '{1}'::int[];
select array_append('{{1}}'::int[], 1);
select array_prepend(1, '{{1}}'::int[]);
select array_remove('[3:6]={1,2,1,null}'::int[], 1), array_remove('[3:6]={1,2,1,null}'::int[], null), array_remove('[3:3]={1}'::int[], 1), array_remove('[3:3]={1}'::int[], 2);
select array_cat('[3:4]={1,2}'::int[], '{}'), array_cat('{a}'::text[], '{{b},{c}}'::text[]);
select array_append('[3:4]={1,2}'::int[], 7.5);

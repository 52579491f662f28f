SELECT printf('Per Engram layer, one token as the preset has it reads %.0f rows of %.0f bytes together; with five drafted tokens a step reads %.0f times as many. At %.0f streams that is %.4g MB a layer. Heads and dims scale the bytes alike, but only heads change the number of reads.',
    (SELECT rows FROM figure WHERE series LIKE 'as the preset%' AND streams = 1), 1e6 * (SELECT mb FROM figure WHERE series LIKE 'as the preset%' AND streams = 1),
    (SELECT a.rows / b.rows FROM figure a, figure b WHERE a.series LIKE '5 drafted%' AND b.series LIKE 'as the preset%' AND a.streams = b.streams LIMIT 1),
    (SELECT max(streams) FROM figure), (SELECT mb FROM figure WHERE series LIKE 'as the preset%' ORDER BY streams DESC LIMIT 1));

UPDATE sandglass.hosts SET labels = $2 WHERE id = $1
